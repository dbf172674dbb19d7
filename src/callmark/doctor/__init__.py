"""`callmark doctor`: is this machine well, and does this runner do what a run needs of it?"""
