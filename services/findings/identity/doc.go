// Package identity decides which finding of an earlier scan a result is: version 2 of the identity ladder.
//
// What is known of a result becomes [Evidence]: hashes of the rule, the file, the tool's own ids, the code, and the
// message. [Match] joins the results of a scan with the findings that are known, one to one, rung by rung, the
// strongest first:
//
//  1. the same rule and file, and the tool's match-based id, its fingerprint, the hashes of code and formula, the code without
//     regard to white space, or, where there is neither code nor a hash of it, the message without line numbers;
//  2. the same in a file that moved: contents prove it, the scanner says so, or most of what vanished from one file came up in
//     one that was not there before; and code that moved by itself, to a new file or certainly away from its place, if it is
//     long enough and there is only one;
//  3. the same rule and file, and code of the same shape near its place: a variable was renamed;
//  4. the same rule and file exactly where it is expected: the code was changed.
//
// A line is never evidence alone. Where it has to be is told by anchors: pairs of the same file that are certain. They
// also tell equal hits of one file apart (one file of 1,027 results had 925 distinct fingerprints, one of them nine
// times): as many as there were keep their order; if some came or went, the fewest insertions and deletions of lines
// that explain the places tell which. Where code was reordered, each hit goes with the anchors on both sides of it.
// What stays ambiguous becomes a new finding, and says so.
//
// An identity is a name ([Assigner]), given at birth and kept while the evidence changes. The version of the ladder is
// stored with the evidence, which a later version can make anew.
package identity
