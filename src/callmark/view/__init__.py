"""`callmark view`: a folder of runs in a browser, served to this machine and nobody else."""
