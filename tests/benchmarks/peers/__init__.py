"""What Switchyard is compared with. Each does the same work with the same durability as its subject."""
