"""`barnabas explain transaction`: what holds last stable offsets back. Facts, findings, sentences: one file each."""
