package osv

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
)

// Advisory holds the stored fields of a document.
type Advisory struct {
	// ID is the advisory's id, such as MAL-2026-1234.
	ID string
	// Title is one line of at most 300 characters.
	Title string
	// Malicious: the packages are malware, not just vulnerable.
	Malicious bool
	Modified  time.Time
	// Withdrawn is zero if the advisory is not withdrawn.
	Withdrawn time.Time
	// Packages of known ecosystems, each once.
	Packages []Package
	// Details are shown in findings.
	Details *storev1.AdvisoryDetails
}

// Package is a package affected by an advisory.
type Package struct {
	// Ecosystem is a word of the contract; Name is normalised.
	Ecosystem, Name string
	Affected        *storev1.AffectedVersions
}

// Limits of a document.
const (
	maxID       = 128
	maxName     = 512
	maxTitle    = 300
	maxPackages = 1000
	maxEntries  = 100_000 // versions and events in total
)

// maliciousPrefix is the id prefix of the malicious packages list.
const maliciousPrefix = "MAL-"

// origins is the key with the sources of that list's reports.
const origins = "malicious-packages-origins"

type document struct {
	ID, Modified, Withdrawn, Summary, Details string
	Aliases, Upstream                         []string
	Severity                                  json.RawMessage
	References                                []struct{ URL string }
	Affected                                  []affected
	DatabaseSpecific                          map[string]json.RawMessage `json:"database_specific"`
}

type affected struct {
	Package struct{ Ecosystem, Name string }
	Ranges  []struct {
		Type   string
		Events []event
	}
	Versions         []string
	DatabaseSpecific map[string]json.RawMessage `json:"database_specific"`
}

type event struct {
	Introduced, Fixed, Limit string
	LastAffected             string `json:"last_affected"`
}

// Parse parses one document. Errors are for people.
func Parse(raw []byte) (*Advisory, error) {
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("not an OSV document: %w", err)
	}
	out := &Advisory{ID: strings.TrimSpace(d.ID), Title: title(d)}
	if err := checkID(out.ID); err != nil {
		return nil, err
	}
	var err error
	if out.Modified, err = moment("modified", d.Modified); err != nil {
		return out, err
	}
	if d.Withdrawn != "" {
		if out.Withdrawn, err = moment("withdrawn", d.Withdrawn); err != nil {
			return out, err
		}
	}
	_, listed := d.DatabaseSpecific[origins]
	out.Malicious = listed || strings.HasPrefix(out.ID, maliciousPrefix)
	out.Details = details(&d)
	at := map[[2]string]int{}
	entries := 0
	for _, a := range d.Affected {
		_, listed := a.DatabaseSpecific[origins]
		out.Malicious = out.Malicious || listed
		ecosystem, ok := Ecosystem(a.Package.Ecosystem)
		name := PackageName(ecosystem, a.Package.Name)
		if !ok || !isName(name) || a.onlyCommits() {
			continue
		}
		key := [2]string{ecosystem, name}
		i, twice := at[key]
		if !twice {
			i = len(out.Packages)
			at[key] = i
			out.Packages = append(out.Packages, Package{Ecosystem: ecosystem, Name: name, Affected: &storev1.AffectedVersions{}})
		}
		if entries += a.addTo(out.Packages[i].Affected); entries > maxEntries || len(out.Packages) > maxPackages {
			return out, fmt.Errorf("more than %d packages or %d versions in one advisory", maxPackages, maxEntries)
		}
	}
	if len(out.Packages) == 0 {
		return out, fmt.Errorf("none of its packages is of a known ecosystem (%s)", strings.Join(Ecosystems, ", "))
	}
	return out, nil
}

// addTo appends the versions and ranges, and returns their number. It ignores ranges of commits.
func (a affected) addTo(to *storev1.AffectedVersions) int {
	entries := len(a.Versions)
	to.Versions = append(to.Versions, a.Versions...)
	for _, r := range a.Ranges {
		kind := strings.ToUpper(r.Type)
		if kind != "SEMVER" && kind != "ECOSYSTEM" {
			continue
		}
		out := &storev1.AffectedRange{Semver: kind == "SEMVER"}
		for _, e := range r.Events {
			out.Events = append(out.Events, &storev1.AffectedEvent{
				Introduced: e.Introduced, Fixed: e.Fixed, LastAffected: e.LastAffected, Limit: e.Limit,
			})
		}
		entries += 1 + len(r.Events)
		to.Ranges = append(to.Ranges, out)
	}
	if len(a.Versions)+len(a.Ranges) == 0 { // affects all versions
		to.Ranges = append(to.Ranges, &storev1.AffectedRange{Events: []*storev1.AffectedEvent{{Introduced: zero}}})
	}
	return entries
}

// onlyCommits reports whether there are only ranges of commits.
func (a affected) onlyCommits() bool {
	for _, r := range a.Ranges {
		if !strings.EqualFold(r.Type, "GIT") {
			return false
		}
	}
	return len(a.Versions) == 0 && len(a.Ranges) > 0
}

func isName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsFunc(name, unicode.IsControl)
}

func checkID(id string) error {
	switch {
	case id == "":
		return errors.New("id is missing")
	case len(id) > maxID:
		return fmt.Errorf("id must have at most %d bytes, got %d", maxID, len(id))
	case strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) || r == unicode.ReplacementChar }):
		return errors.New("id must have no spaces and no control characters")
	}
	return nil
}

func moment(field, text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, fmt.Errorf("%s must be a time such as 2026-05-04T10:20:30Z", field)
	}
	return t.UTC().Truncate(time.Microsecond), nil
}

// title is the summary, else the beginning of the details, else the id, without control characters.
func title(d document) string {
	for _, text := range []string{d.Summary, d.Details} {
		text = strings.TrimLeft(strings.TrimSpace(text), "#- \t")
		text, _, _ = strings.Cut(text, "\n")
		text = strings.TrimSpace(strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || r == unicode.ReplacementChar {
				return -1
			}
			return r
		}, text))
		if runes := []rune(text); len(runes) > maxTitle {
			text = string(runes[:maxTitle-1]) + "…"
		}
		if text != "" {
			return text
		}
	}
	return strings.TrimSpace(d.ID)
}
