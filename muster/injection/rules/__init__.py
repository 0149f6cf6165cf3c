"""What a pod gets, one file per rule: each from a subject to additions, knowing of no other."""
