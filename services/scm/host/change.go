package host

import "strings"

// Change is one file with a new content, to be proposed as a pull (or merge) request.
type Change struct {
	// Base and Branch are short names; Branch is made off Base, and is ours: it is overwritten when it exists.
	Base, Branch string
	// Path is the file's, which must exist on Base.
	Path    string
	Content []byte
	// Title is also the first line of the commit's message; Text is the description of the request.
	Title, Text string
}

// maxFile is the largest file that is read, in bytes: the hosts' APIs give no more in one answer.
const maxFile = 1 << 20

// checkPath refuses what is no path of a file inside a repository, before it becomes part of a URL.
func checkPath(path string) error {
	bad := path == "" || len(path) > 4096 || printable(path) != path || strings.HasPrefix(path, "/")
	for part := range strings.SplitSeq(path, "/") {
		bad = bad || part == "" || part == "." || part == ".."
	}
	if bad {
		return &Error{Kind: NotFound, Text: "the repository has no file of the name " + clip(path)}
	}
	return nil
}

func tooLargeFile(path string) error {
	return &Error{Kind: Unsupported, Text: clip(path) + " is no text file of at most 1 MiB"}
}
