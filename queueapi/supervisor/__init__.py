"""`manage.py up`: the whole system as child processes of one parent."""
