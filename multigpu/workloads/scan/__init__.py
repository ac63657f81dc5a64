"""Known sequences in reads and genomes: which signatures occur where in which samples."""
