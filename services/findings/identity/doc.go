// Package identity decides which finding of an earlier scan a result is: version 1 of the identity ladder.
//
// The strongest evidence at hand is used: the tool's match-based id, its fingerprint, the code, and at last the message. A line
// number is never evidence, so that moved code keeps its triage; neither is indentation. Tools repeat evidence (one file of 1,027
// results had 925 distinct fingerprints, one of them nine times), so equal results are told apart by their order in the file.
//
// The version is part of every fingerprint: a later ladder can live beside the findings of this one.
package identity
