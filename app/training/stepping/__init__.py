"""Taking the steps of training, and what is done about one whose numbers are not finite."""
