"""What did a fine-tune do to the tool calls? Cases, views, and what is said about them."""
