"""Files that a docking job writes: poses, their scores, and the ligands that were skipped."""
