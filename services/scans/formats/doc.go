// Package formats recognises report formats and converts their reports to SARIF 2.1.0, which package sarif reads.
//
// Each format is one file with one [Format], and a line in [All]. Its Recognises looks at the [Outline] of a document:
// formats are detected by content, never by the name of a file. Its Convert walks the document, and passes each problem
// to a [Writer] as a [Result], in the words of the tool: package sarif reads severities, CWEs, packages and paths of
// all spellings. Documents are read in constant memory: a reader decodes one problem at a time. [Input.Walk] reads
// JSON, [Input.WalkXML] reads XML.
//
// Nothing is lost silently. A part of a wrong type costs that part, with a warning that has its JSON pointer. An item
// that cannot be used is reported as unreadable, and then the report closes no finding.
package formats
