"""A dataset's own answers, judged by the scorer and the gates that models are judged by."""
