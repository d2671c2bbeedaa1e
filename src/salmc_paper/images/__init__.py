"""What is measured on chains over images: classes, Fréchet distance, copies of training images."""
