"""The contestants, one file each; a file is run as a process of its own and answers commands (`worker.serve`)."""
