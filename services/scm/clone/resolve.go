package clone

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// resolve finds the commit of a ref among the advertised refs.
func resolve(advertised *packp.AdvRefs, ref string) (full string, want plumbing.Hash, err error) {
	if ref == "" || ref == "HEAD" {
		if advertised.Head == nil {
			return "", want, &Error{Text: "the repository has no default branch: name a ref", Permanent: true}
		}
		return headName(advertised), *advertised.Head, nil
	}
	for _, name := range []string{ref, "refs/heads/" + ref, "refs/tags/" + ref} {
		if hash, ok := advertised.References[name]; ok {
			return name, hash, nil
		}
	}
	if plumbing.IsHash(ref) { // hosts serve any commit reachable from a ref
		return ref, plumbing.NewHash(ref), nil
	}
	return "", want, &Error{Text: fmt.Sprintf("the repository has no ref %q", shorten(ref)), Permanent: true}
}

// headName is the branch that HEAD points to, if the host reports it.
func headName(advertised *packp.AdvRefs) string {
	for _, link := range advertised.Capabilities.Get("symref") {
		if name, ok := strings.CutPrefix(link, "HEAD:"); ok {
			return name
		}
	}
	return "HEAD"
}

const maxShown = 200 // maximum length of a ref in an error, in runes

func shorten(text string) string {
	if utf8.RuneCountInString(text) <= maxShown {
		return text
	}
	return string([]rune(text)[:maxShown]) + "…"
}
