"""Read counts: how many reads of alignment files begin in which regions."""
