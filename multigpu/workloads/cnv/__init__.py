"""Copy-number variants from read counts, by the cn.MOPS pipeline."""
