"""What develops callmark and is not shipped: the proof, the campaign, the training of its model."""
