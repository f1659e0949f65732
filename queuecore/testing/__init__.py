"""What helps to test and to try out code that uses Switchyard."""
