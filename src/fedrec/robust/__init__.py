"""Folds that few dishonest clients cannot move: pieces between the uploads and any method's aggregate."""
