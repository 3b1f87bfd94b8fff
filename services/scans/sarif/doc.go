// Package sarif reads SARIF 2.1.0 reports of any size in constant memory.
//
// A report is read in two passes over one [io.ReadSeeker]. [Open] is the first pass. It checks the syntax of the whole
// file, reads everything except the results (rules may follow the results), and counts the results of each run.
// [Report.Results] is the second pass. It streams the results in file order, and passes each result either to yield or,
// with a reason, to skip. So a broken file is rejected before the first result is processed, and no result is dropped
// silently.
//
// The reader is lenient, because real tools do not follow the schema. It accepts a byte order mark, null for an array,
// unknown fields, a missing $schema and invalid UTF-8. An error in one place rejects only that place: a result of wrong
// types is skipped, a run without a tool name is rejected. Only broken JSON, another format or an exceeded [Limits]
// value rejects the report.
//
// Decisions where the specification leaves room:
//
//   - Severity: security-severity of the result, then of the rule (9.0 and above critical, 7.0 high, 4.0 medium, above
//     0 low; anything else counts as absent), then the result's level, the invocation's override, the rule's default,
//     and "warning". error is high, warning medium, note low; none is skipped. Kinds open and review have no level by
//     the specification (3.27.10) and are low unless a security-severity or level is given.
//   - Kinds pass, notApplicable and informational, and baselineState absent, are skipped: they are no problems of this
//     commit.
//   - A rule is found by id (exact, then by hierarchical prefix), and by index only if no id is given, because real
//     tools write wrong indexes. An unknown id gets a stub rule.
//   - Regions: lines and columns are 1-based. No region, or a region with offsets only, is line 1, column 1. A missing
//     endLine is the start line. A missing endColumn means "to the end of the line", which is unknown without the
//     source. It becomes the start column (an empty range), or 1 on a later line. Columns are passed on in the tool's
//     own unit.
//   - Paths are relative to the checkout if the file says where that is. A path that cannot be made relative is kept
//     unchanged, without the file scheme. A path that leaves the checkout by ".." is skipped.
//   - Placeholders and doubled braces in message texts are processed only if the message has arguments, and links only
//     if their target exists, because most tools write plain text full of braces and brackets.
//   - Nothing named in a report is ever fetched.
package sarif
