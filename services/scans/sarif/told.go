package sarif

import "github.com/palisade/palisade/services/scans/jsonstream"

// placesTold counts what people should know about the places of a run.
type placesTold struct {
	faults   [pathFaults]int
	examples [pathFaults]string
	// split is the number of results with a finding for each place, and places the number of these findings. lost counts
	// places that could not be read.
	split, places, lost int
	// unread is the number of results whose severity is none that is known, and severityExample one of them.
	unread          int
	severityExample string
	// cutFlows is the number of results whose flows are longer than what is kept.
	cutFlows int
}

func (t *placesTold) path(file string, fault pathFault) {
	if t.faults[fault]++; t.examples[fault] == "" {
		t.examples[fault] = jsonstream.Cut(file, 200)
	}
}

// maxUnread is the length at which an unknown severity is cut.
const maxUnread = 40

func (t *placesTold) severity(unread string) {
	if unread == "" {
		return
	}
	if t.unread++; t.severityExample == "" {
		t.severityExample = jsonstream.Cut(redactTokens(jsonstream.OneLine(unread)), maxUnread)
	}
}

// tellPlaces adds a warning for each kind of what was counted.
func (run *Run) tellPlaces() {
	t := &run.told
	if n := t.faults[pathClimbs]; n > 0 {
		run.warn(`%d paths leave the repository by "..": their leading "../" are removed; path_prefix may say where they begin`, n)
	}
	if n := t.faults[pathAbsolute]; n > 0 {
		run.warn("%d paths are absolute, such as %s: checkout_root may say which directory is the repository", n, t.examples[pathAbsolute])
	}
	if n := t.faults[pathOnHost]; n > 0 {
		run.warn("%d paths are written as file:// and a name, such as file://%s: the name is taken for a directory of the repository; "+
			"if it is a host, checkout_root may say which directory is the repository", n, t.examples[pathOnHost])
	}
	if n := t.faults[pathTooLong]; n > 0 {
		run.warn("%d paths are cut after %d bytes", n, maxPath)
	}
	if t.unread > 0 {
		run.warn("the severity of %d results cannot be read, such as %q: the next source decides, else it is medium", t.unread, t.severityExample)
	}
	if t.split > 0 {
		run.warn("%d results name several places: each place is a finding, %d in all", t.split, t.places)
	}
	if t.cutFlows > 0 {
		run.warn("the data flows or fixes of %d results are cut: %d steps and %d bytes of them are kept", t.cutFlows, maxSteps, maxFlowBytes)
	}
	if t.lost > 0 {
		run.Succeeded = false
		run.warn("%d places could not be read, so that no finding is closed by this run", t.lost)
	}
}
