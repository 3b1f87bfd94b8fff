// Package identity matches the results of a scan to the findings of earlier scans. It implements version 2 of the
// identity ladder.
//
// [Evidence] is what a result can be recognised by: hashes of the rule, the path, the tool's own ids, the code, and the
// message. [Match] joins results and findings one to one, rung by rung, the strongest rung first:
//
//  1. The rule and the path are equal, and one more piece of evidence: the tool's match-based id, its fingerprint,
//     its hashes of code and formula, or the code without white space. A result that has neither code nor a hash of
//     it is matched by its message without line numbers.
//  2. The same evidence in a file that moved. A file has moved if its contents are equal, if the scanner says so, or
//     if most of what disappeared from one file appeared in a new one. Single pieces of code can move, too: to a new
//     file, or away from a line that was scanned. The code has to be long enough and unique.
//  3. The rule and the path are equal, and code of the same shape is near the expected line: a variable was renamed.
//  4. The rule and the path are equal, and the result is exactly on the expected line: the code was changed.
//
// A line alone is never evidence. Anchors, which are certain pairs of the same file, give the expected line of a
// finding. They also distinguish equal results of one file. (One real file of 1,027 results had 925 distinct
// fingerprints; one fingerprint occurred nine times.) If the number of equal results is unchanged, they keep their
// order. Otherwise the pairing that needs the fewest insertions and deletions of lines wins. Where code was reordered,
// each result is paired between the anchors on both sides of it. A result that stays ambiguous becomes a new finding,
// and the join says why.
//
// An [Assigner] gives a finding its identity when it is first seen. The identity stays the same while the evidence
// changes. Evidence is stored with the version of the ladder, so that a later version can recompute it.
package identity
