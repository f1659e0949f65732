"""Protocol Buffers: `.proto` sources and the code `scripts/generate-proto` makes of them."""
