"""The search for signatures in samples with errors: mismatches, or edits.

What is a hit:

* **Mismatches.** Every start at which at most K bases of the pattern do not match the bases of the
  sample under them.
* **Edits** (substitutions, insertions, deletions). Let d(e) be the least number of edits of the
  whole pattern against any piece of the sample that ends before position e, the empty piece
  included. A hit is every run of neighbouring ends with the same d <= K whose neighbours on both
  sides, or the sample's ends, have more. It is reported at the run's first end.

A pattern may have a prefix and a suffix that are exact: there no base may differ, and no gap may be
inside of them.

`reference.py` says what is right, base by base. `seeds.py` decides which patterns are found by
seeds (`cpu_seeds.py`, `seeds.cu`), as long ones are, and which by a sweep over all positions.
`../cpu_sweep.py` and `../sweep.cu` sweep for mismatches: they count those of many positions at a
time, in bytes and in bit planes; on a GPU, patterns that share exact bases are counted only where
these match (`../sweep_queries.py`). `cpu.py` and `edits.cu` sweep for edits: they keep a
column of the table of distances as bits (Myers 1999, Hyyrö 2003) and find ends that may be hits;
`verification.py` cuts patterns into pieces for both, and settles these ends and those of the seeds.
`alignment.py` finds their starts and alignments.
"""
