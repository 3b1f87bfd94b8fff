package formats

import (
	"cmp"
	"strings"
	"time"

	"github.com/palisade/palisade/services/scans/jsonstream"
	"github.com/palisade/palisade/services/scans/places"
	"github.com/palisade/palisade/services/scans/sarif"
)

// maxFailed bounds the files of a run that are listed as failed.
const maxFailed = 10_000

// failedFile is a file that the tool could not analyse, or a rule that it could not run.
type failedFile struct{ path, rule, reason string }

// The arrays of a run, in their order.
const (
	listArtifacts = "artifacts"
	listResults   = "results"
)

// Scanned says that the tool analysed a file of the open run. If a report names such files, it closes no findings in
// other ones. All files have to be named before the first result.
func (w *Writer) Scanned(path string) {
	if path == "" || w.list == listResults {
		return
	}
	w.absolute = w.absolute || places.IsAbsolute(places.Decode(path))
	w.element(listArtifacts)
	w.json(sarifScanned{Location: sarifArtifact{uri(path)}, Roles: []string{"analysisTarget"}})
}

// Failed says that the tool could not analyse a file of the open run, so that no finding in it is closed. Without a
// path no finding is closed at all.
func (w *Writer) Failed(path, reason string) {
	reason = jsonstream.Cut(jsonstream.OneLine(jsonstream.Clean(reason)), 200)
	switch {
	case path == "":
		w.Fail("the tool reports an error: " + cmp.Or(reason, "without a text"))
	case len(w.failed) >= maxFailed:
		w.Fail("the tool could not analyse more files than can be listed")
	default:
		path = jsonstream.Cut(jsonstream.Clean(path), 4096)
		w.Warn("%s was not analysed, so that no finding in it is closed: %s", jsonstream.Cut(path, 200), cmp.Or(reason, "the tool reports an error"))
		w.failed = append(w.failed, failedFile{path: path, reason: reason})
	}
}

// placeFailed makes the failed files relative, as the results are. It fails the run if it is not known which file of
// the repository one is.
func (w *Writer) placeFailed() {
	for i, file := range w.failed {
		if w.absolute || !places.IsAbsolute(places.Decode(file.path)) {
			continue
		}
		inside, ok := strings.CutPrefix(file.path, strings.TrimSuffix(w.tool.Directory, "/")+"/")
		if !ok || w.tool.Directory == "" {
			w.Fail(jsonstream.Cut(file.path, 200) + " was not analysed, and it is not known which file of the repository that is")
			return
		}
		w.failed[i].path = inside
	}
}

// FailedRule says that the tool could not run a rule in the open run, so that no finding of it is closed.
func (w *Writer) FailedRule(rule, reason string) {
	if rule == "" || len(w.failed) >= maxFailed {
		w.Failed("", reason)
		return
	}
	w.Warn("rule %s did not run, so that no finding of it is closed: %s", jsonstream.Cut(rule, 200), reason)
	w.failed = append(w.failed, failedFile{rule: rule, reason: reason})
}

// maxFailedPackages bounds the packages of a run that are listed as failed.
const maxFailedPackages = 1000

// FailedPackage says that the tool could not look at a package in the open run, so that no finding about it is closed.
func (w *Writer) FailedPackage(name, reason string) {
	n := w.notes()
	if name == "" || len(n.FailedPackages) >= maxFailedPackages {
		w.Failed("", reason)
		return
	}
	name = jsonstream.Cut(jsonstream.Clean(name), 200)
	w.Warn("%s could not audit %s, so that no finding about it is closed", w.tool.Name, name)
	n.FailedPackages = append(n.FailedPackages, name)
}

// begin starts an array of the open run, unless it is open.
func (w *Writer) begin(list string) {
	switch w.list {
	case list:
		return
	case "":
		w.text(`"` + list + `":[`)
	default:
		w.text(`],"` + list + `":[`)
	}
	w.list = list
}

// element starts an element of an array of the open run.
func (w *Writer) element(list string) {
	if w.list == list {
		w.text(",")
	}
	w.begin(list)
}

// invocation writes where and when the tool ran, and what it could not analyse.
func (w *Writer) invocation() {
	ended := sarif.ParseTime(w.tool.RanAt)
	if w.tool.Directory == "" && ended.IsZero() && len(w.failed) == 0 {
		return
	}
	v := sarifInvocation{Successful: true}
	if !ended.IsZero() {
		v.Ended = ended.Format(time.RFC3339Nano)
	}
	if w.tool.Directory != "" {
		v.Directory = &sarifArtifact{uri(w.tool.Directory)}
	}
	for _, file := range w.failed {
		n := sarifNotification{Level: "error", Message: sarifText{Text: file.reason}}
		if file.path != "" {
			n.Locations = []sarifLocation{{Physical: physical(file.path, sarifRegion{})}}
		}
		if file.rule != "" {
			n.Rule = &sarifID{ID: file.rule}
		}
		v.Notifications = append(v.Notifications, n)
	}
	w.text(`,"invocations":[`)
	w.json(v)
	w.text("]")
}
