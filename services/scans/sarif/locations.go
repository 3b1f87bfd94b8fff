package sarif

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// placesTools name all places of a rule in one result, and each place can be mended alone. SARIF 3.27.12 forbids that,
// so that for all other tools a result is one finding, and its further locations are related to it: steps of the path
// to an error, or all the places that have to change together. docs/scanners.md has this table.
var placesTools = map[string]bool{"pmd": true, "mobsfscan": true, "njsscan": true, "nodejsscan": true}

// chosen is the index of the first location that names a file, else a place inside one, else anything. It is -1 if
// there is none.
func (w *wireResult) chosen() int {
	best, weight := -1, 0
	for i := range w.Locations {
		n := 1
		if p := w.Locations[i].PhysicalLocation; p != nil && p.ArtifactLocation != nil {
			return i
		} else if p != nil {
			n = 2
		}
		if n > weight {
			best, weight = i, n
		}
	}
	return best
}

// location is the chosen location, or else the analysis target.
func (w *wireResult) location() wirePhysicalLocation {
	if i := w.chosen(); i >= 0 && w.Locations[i].PhysicalLocation != nil {
		return *w.Locations[i].PhysicalLocation
	}
	return wirePhysicalLocation{ArtifactLocation: w.AnalysisTarget}
}

// maxRelated bounds the related locations of a result.
const maxRelated = 100

// addLocations sets the logical place of a result, and the related locations unless every location is a finding.
func (run *Run) addLocations(res *Result, w *wireResult) {
	chosen := w.chosen()
	if chosen >= 0 {
		res.Logical, res.LogicalKind = run.logicalPlace(w.Locations[chosen].LogicalLocations)
	}
	if len(w.Locations) < 2 || placesTools[run.Tool.Slug] {
		return
	}
	for i := range w.Locations {
		location := &w.Locations[i]
		if res.Logical == "" {
			res.Logical, res.LogicalKind = run.logicalPlace(location.LogicalLocations)
		}
		if i == chosen || len(res.Related) >= maxRelated {
			continue
		}
		if related, ok := run.related(location); ok && related != res.ownPlace(related.Message) {
			res.Related = append(res.Related, related)
		}
	}
}

func (res *Result) ownPlace(message string) RelatedLocation {
	return RelatedLocation{res.Path, res.Line, res.Column, res.EndLine, res.EndColumn, message, res.Logical}
}

// related converts a location. It reports false if the location names no place.
func (run *Run) related(location *wireLocation) (RelatedLocation, bool) {
	at, physical := Result{}, wirePhysicalLocation{}
	if location.PhysicalLocation != nil {
		physical = *location.PhysicalLocation
	}
	at.Path, _ = run.paths.resolve(physical.ArtifactLocation)
	at.region(physical.Region)
	at.Logical = run.logicalName(location.LogicalLocations)
	message := ""
	if m := location.Message; m != nil {
		if message = m.Text; message == "" {
			message = m.Markdown
		}
	}
	return at.ownPlace(strings.TrimSpace(jsonstream.Clean(message))), at.Path != "" || at.Logical != ""
}

const maxRelatedMessage = 1024

// redactPlaces removes secrets from the texts of the places.
func (res *Result) redactPlaces(r redactor) {
	res.Logical = r.text(res.Logical)
	for i := range res.Related {
		res.Related[i].Message = jsonstream.Cut(r.text(res.Related[i].Message), maxRelatedMessage)
		res.Related[i].Logical = r.text(res.Related[i].Logical)
	}
}

// yieldPlaces yields a result, and one more for each further location if the tool means places. Then the fingerprints
// belong to none of them: they would join findings of different places.
func (run *Run) yieldPlaces(raw jsontext.Value, res *Result, rep *Report, yield func(*Result) error) error {
	w := run.wire
	if len(w.Locations) < 2 || !placesTools[run.Tool.Slug] {
		return yield(res)
	}
	res.MatchBasedID, res.ToolFingerprint = "", ""
	run.told.split++
	run.told.places++
	if err := yield(res); err != nil {
		return err
	}
	chosen, last := w.chosen(), res
	return eachLocation(raw, func(i int, location *wireLocation, problem error) error {
		if i == chosen {
			return nil
		}
		if problem != nil || run.told.places >= rep.limits.MaxResults {
			run.told.lost++
			return nil
		}
		place, ok := run.placeOf(res, location, rep)
		if !ok || place.Path == "" && res.Path != "" {
			run.told.lost++
		}
		if !ok || place.ownPlace("") == last.ownPlace("") {
			return nil
		}
		last = place
		run.told.places++
		return yield(place)
	})
}

// placeOf copies a result to another location. It reports false if the location names no place.
func (run *Run) placeOf(res *Result, location *wireLocation, rep *Report) (*Result, bool) {
	place, physical := *res, wirePhysicalLocation{}
	if location.PhysicalLocation != nil {
		physical = *location.PhysicalLocation
	}
	var fault pathFault
	place.Path, fault = run.paths.resolve(physical.ArtifactLocation)
	place.Logical, place.LogicalKind = run.logicalPlace(location.LogicalLocations)
	if place.Path == "" && place.Logical == "" {
		return nil, false
	}
	run.told.path(place.Path, fault)
	place.region(physical.Region)
	place.Related, place.Flows, place.Fixes = nil, nil, nil
	run.texts(&place, run.wire, physical, rep)
	place.MatchBasedID, place.ToolFingerprint = "", ""
	return &place, true
}

// eachLocation reads all locations of a result one by one: there may be more than a result in memory keeps.
func eachLocation(raw jsontext.Value, each func(i int, location *wireLocation, problem error) error) error {
	var out struct {
		Locations locationStream `json:"locations"`
	}
	out.Locations.each = each
	if err := json.Unmarshal(raw, &out, jsonstream.Options); out.Locations.err != nil || err != nil {
		if out.Locations.err != nil {
			return out.Locations.err
		}
		return err
	}
	return nil
}

// locationStream passes the elements of an array on.
type locationStream struct {
	each func(i int, location *wireLocation, problem error) error
	err  error // of each
}

// UnmarshalJSONFrom implements [json.UnmarshalerFrom].
func (s *locationStream) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if dec.PeekKind() != '[' {
		return dec.SkipValue()
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	for i := 0; dec.PeekKind() != ']'; i++ {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		var location wireLocation
		problem := jsonstream.Unmarshal(value, &location, nil)
		if s.err = s.each(i, &location, problem); s.err != nil {
			return s.err
		}
	}
	_, err := dec.ReadToken()
	return err
}
