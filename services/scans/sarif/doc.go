// Package sarif reads SARIF 2.1.0 reports of any size in constant memory.
//
// A report is read in two passes over one [io.ReadSeeker]. [Open] is the first pass. It checks the syntax of the whole
// file, reads everything except the results (rules may follow the results), and counts the results of each run.
// [Report.Results] is the second pass. It streams the results in file order, and passes each result either to yield or,
// with a reason, to skip. So a broken file is rejected before the first result is processed, and no result is dropped
// silently.
//
// The reader is lenient, because real tools do not follow the schema. It accepts a byte order mark, null for an array,
// unknown fields, a missing $schema and invalid UTF-8. A part of a wrong type costs that part: a scalar is converted,
// an object is read as a list of one, anything else is ignored. A result only needs something to say: a message, a
// rule or a location. Only broken JSON, another format or an exceeded [Limits] value rejects the report.
//
// The reader is loud, too. Each such part is a warning with its JSON pointer; equal ones are one warning. If the part
// may be a result, or identifies one, [Run.Partial] says so, and no finding may be closed by the run: a result or rule
// that cannot be read, a broken ruleId, message, location or fingerprint, a list of another type. Only results of kind
// pass or notApplicable, of level none, and of baselineState absent are skipped and may close.
//
// Decisions where the specification leaves room:
//
//   - Severity: a score or word of the result's properties or tags, then of the rule's, then the result's level, the
//     invocation's override, the rule's default, and "warning". error is high, warning medium, note low; none is
//     skipped unless the result or a score of the rule says how severe it is. Kinds open, review and informational have
//     no level by the specification (3.27.10) and are low unless something gives a severity.
//   - Kinds pass and notApplicable, and baselineState absent, are skipped: they are no problems of this commit.
//   - Properties are known by what they are about, in all spellings ([PropertyNames]). CWEs, OWASP entries, packages
//     and advisories are also read from taxa, tags, rule ids, package URLs in names of logical locations, and the texts
//     of known tools. What a result says wins over what its rule says.
//   - A rule is found by id (exact, then by hierarchical prefix), and by index only if no id is given, because real
//     tools write wrong indexes. An unknown id gets a stub rule. A result that names no rule gets the rule whose name
//     its message begins with, or "<tool>/unnamed".
//   - An invocation failed if it has an execution notification of level error, could not start, was ended by a signal,
//     or has an exit code that its tool does not document as "found something" (exit_codes.go). executionSuccessful:
//     false alone is a failure, too, but not with such an exit code: SpotBugs and others write it when they found
//     something.
//   - Parts in inlineExternalProperties are read as parts of their run. Other external files are never read.
//   - Regions: lines and columns are 1-based. No region, or a region with offsets only, is line 1, column 1. A missing
//     endLine is the start line. A missing endColumn means "to the end of the line", which is unknown without the
//     source. It becomes the start column (an empty range), or 1 on a later line. Columns are passed on in the tool's
//     own unit.
//   - Paths are relative to the checkout if the caller or the file says where that is, or if it is the usual one of a
//     CI service, which a warning tells (package places). A path that cannot be made relative is kept unchanged,
//     without the file scheme. A path that leaves the checkout by ".." loses its leading "../", with a warning. No path
//     is a reason to skip a result.
//   - Several locations are one finding with related locations, except for the tools in placesTools.
//   - Placeholders and doubled braces in message texts are processed only if the message has arguments, and links only
//     if their target exists, because most tools write plain text full of braces and brackets.
//   - Secrets are redacted while results are converted: well-known tokens in every text of every result, and the code
//     of results about secrets, by tool, product, weakness, or name of the rule. Texts are cut after that.
//   - Flows, related locations and fixes are kept within bounds for each result. A warning counts what is cut.
//   - Nothing named in a report is ever fetched.
package sarif
