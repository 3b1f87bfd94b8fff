package host

import "strings"

// Change is new content for one file, to be proposed in a pull (or merge) request.
type Change struct {
	// Base and Branch are short names. Branch is created from Base and belongs to Palisade: if it exists, it is
	// overwritten.
	Base, Branch string
	// Path is the file's path. The file must exist on Base.
	Path    string
	Content []byte
	// Title is also the first line of the commit message. Text is the description of the request.
	Title, Text string
}

// maxFile is the maximum size of a file, in bytes. The hosts' APIs return no more in one response.
const maxFile = 1 << 20

// checkPath rejects invalid file paths before they become part of a URL.
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
	return &Error{Kind: Unsupported, Text: clip(path) + " is not a text file of at most 1 MiB"}
}
