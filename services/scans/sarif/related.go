package sarif

// RelatedLocation is a further place of a result: one that the tool names beside the finding's own place, for example
// an earlier step of the path to an error, or the declaration of a variable.
type RelatedLocation struct {
	// Path has the same form as Result.Path. It is empty if the place is not in a file.
	Path string
	// Line to EndColumn have the same form as those of Result.
	Line, Column, EndLine, EndColumn int
	// Message says what this place has to do with the finding. It may be empty.
	Message string
	// Logical is the name of the place inside the program or resource, or empty.
	Logical string
}
