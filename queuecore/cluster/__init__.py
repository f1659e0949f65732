"""Who is there, who consumes which partition, and who is told what. Without a database of its own.

`services` has the words, `assignment` says who should have what, a `store` remembers who has it, an `agent` lives in
every instance, and one of them coordinates. `notifications` and `events` tell instances of what happened.
"""
