"""A state as a file, and a file as a state.

``codec``      plain values ↔ JSON, by the types that dataclasses declare
``container``  the file: frames in one compressed stream
``blocks``     pages of columns as blocks, each written once
``writer``     a state's columns into blocks, in pieces
``reader``     a state from blocks
"""
