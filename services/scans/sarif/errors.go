package sarif

// FormatError says that a file is not a SARIF 2.1.0 report.
type FormatError struct{ Reason string }

func (e *FormatError) Error() string { return "not a SARIF 2.1.0 report: " + e.Reason }
