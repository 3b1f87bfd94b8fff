package gitignore

import (
	"fmt"
	"strings"
)

// List matches paths with patterns. It is not safe for concurrent use.
type List struct {
	patterns []*pattern
	// dirs caches which pattern ignores a directory; nil: none.
	dirs map[string]*pattern
}

// maxDirs bounds the cache.
const maxDirs = 10_000

// Error says which pattern is refused, and why.
type Error struct {
	Index int
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("pattern %d: %v", e.Index, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// New compiles patterns, in the order of their lines. The error is an *Error.
func New(texts ...string) (*List, error) {
	l := &List{dirs: map[string]*pattern{}}
	for i, text := range texts {
		p, err := compile(text)
		if err != nil {
			return nil, &Error{i, err}
		}
		l.patterns = append(l.patterns, p)
	}
	return l, nil
}

// Check returns why a pattern is refused; nil if it is not.
func Check(text string) error {
	_, err := compile(text)
	return err
}

// Empty reports whether the list has no patterns. It may be nil.
func (l *List) Empty() bool { return l == nil || len(l.patterns) == 0 }

// Match returns the pattern that ignores a file; ignored is false if none does. The path is relative to the root of the
// repository. A nil list ignores nothing.
func (l *List) Match(path string) (pattern string, ignored bool) {
	if l.Empty() {
		return "", false
	}
	path = strings.TrimLeft(strings.TrimPrefix(path, "./"), "/")
	if path == "" {
		return "", false
	}
	p := l.find(path, false)
	if p == nil {
		return "", false
	}
	return p.text, true
}

// find returns the pattern that ignores a path: the one that ignores its directory, or else the last one that matches,
// unless that is an exception.
func (l *List) find(path string, dir bool) *pattern {
	if dir {
		if p, known := l.dirs[path]; known {
			return p
		}
	}
	slash := strings.LastIndexByte(path, '/')
	var found *pattern
	if slash > 0 {
		found = l.find(path[:slash], true)
	}
	if found == nil {
		found = l.last(path, path[slash+1:], dir)
	}
	if dir {
		if len(l.dirs) >= maxDirs {
			clear(l.dirs)
		}
		l.dirs[path] = found
	}
	return found
}

func (l *List) last(path, name string, dir bool) *pattern {
	for i := len(l.patterns) - 1; i >= 0; i-- {
		if p := l.patterns[i]; p.matches(path, name, dir) {
			if p.except {
				return nil
			}
			return p
		}
	}
	return nil
}
