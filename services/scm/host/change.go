package host

import (
	"iter"
	"strings"
)

// Change is new content for one file, to be proposed in a pull (or merge) request.
type Change struct {
	// Base and Branch are short names. Branch is created from Base and belongs to Palisade: if it exists, it is
	// overwritten.
	Base, Branch string
	// Path is the file's path. The file must exist on Base, except at GitHub if Create is true.
	Path    string
	Create  bool
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

// maxChangedFiles is how many files of a pull request are read. GitHub lists no more.
const maxChangedFiles = 3000

// changedPaths collects the paths of a pull request's files. paths begin with the present path of a file. total is how
// many files it has, as the host counts them.
func changedPaths[T any](files iter.Seq2[T, error], total int, paths func(T) []string) ([]string, error) {
	if total > maxChangedFiles {
		return nil, errManyFiles
	}
	var out []string
	n := 0
	for file, err := range files {
		if err != nil {
			return nil, err
		}
		if n++; n > maxChangedFiles {
			break
		}
		named := paths(file)
		if named[0] == "" {
			return nil, malformed("the host's answer is not a list of changed files", nil)
		}
		out = append(out, named...)
	}
	if n != total {
		return nil, errManyFiles
	}
	return out, nil
}

var errManyFiles = &Error{Kind: Unsupported, Text: "the host does not list all files of the pull request"}
