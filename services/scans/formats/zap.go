package formats

import (
	"cmp"
	"encoding/xml"
	"hash/maphash"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/palisade/palisade/services/scans/jsonstream"
)

// zapAlert is what an alert says about all of its instances. JSON and XML reports have the same names.
type zapAlert struct {
	PluginID   string `json:"pluginid" xml:"pluginid"`
	Ref        string `json:"alertRef" xml:"alertRef"`
	Alert      string `json:"alert" xml:"alert"`
	Name       string `json:"name" xml:"name"`
	Risk       string `json:"riskcode" xml:"riskcode"`
	Confidence string `json:"confidence" xml:"confidence"`
	Desc       string `json:"desc" xml:"desc"`
	Solution   string `json:"solution" xml:"solution"`
	Reference  string `json:"reference" xml:"reference"`
	CWE        string `json:"cweid" xml:"cweid"`
	WASC       string `json:"wascid" xml:"wascid"`
}

// zapInstance is a place of an alert. In old reports an alert has one, and no list.
type zapInstance struct {
	URI      string `json:"uri" xml:"uri"`
	Method   string `json:"method" xml:"method"`
	Param    string `json:"param" xml:"param"`
	Attack   string `json:"attack" xml:"attack"`
	Evidence string `json:"evidence" xml:"evidence"`
	Info     string `json:"otherinfo" xml:"otherinfo"`
}

const (
	// maxAlerts bounds the alerts of a report. ZAP has an alert for each rule and site.
	maxAlerts = 200_000
	// maxPlaces bounds the places of an alert that are compared with each other.
	maxPlaces = 200_000
	// maxAttack bounds the parts of a message that tell how ZAP found the problem.
	maxAttack = 1000
)

// zapReport converts one report. Its first pass collects the alerts, because their members follow their instances.
type zapReport struct {
	w      *Writer
	alerts []*zapAlert
	bytes  int

	at   int // the index of the alert that is being converted
	seed maphash.Seed
	seen map[uint64]bool // its places
}

func newZAPReport(w *Writer) *zapReport { return &zapReport{w: w, seed: maphash.MakeSeed(), at: -1} }

// keep keeps an alert of the first pass, within limits.
func (r *zapReport) keep(a *zapAlert) {
	if len(r.alerts) >= maxAlerts {
		return
	}
	for _, text := range []*string{&a.PluginID, &a.Ref, &a.Alert, &a.Name, &a.Risk, &a.Confidence, &a.CWE, &a.WASC} {
		*text = jsonstream.Cut(strings.TrimSpace(*text), 200)
	}
	a.Desc, a.Solution, a.Reference = jsonstream.Cut(a.Desc, 4<<10), jsonstream.Cut(a.Solution, 4<<10), jsonstream.Cut(a.Reference, 4<<10)
	if r.bytes += len(a.Desc) + len(a.Solution) + len(a.Reference); r.bytes > maxRuleBytes {
		a.Desc, a.Solution, a.Reference = "", "", ""
	}
	r.alerts = append(r.alerts, a)
}

// site starts the alerts of a site. Reports about other sites do not close its findings.
func (r *zapReport) site(version, name string) {
	tool := Tool{Name: "ZAP", Version: version}
	if name != "" {
		tool.Category = "site:" + jsonstream.Cut(name, 200)
	}
	r.w.Run(tool)
}

// next goes to the next alert, and reports whether it was kept.
func (r *zapReport) next(pointer string) bool {
	r.at++
	r.seen = map[uint64]bool{}
	if r.at >= len(r.alerts) {
		r.w.Unreadable(pointer, "is one of too many alerts")
		return false
	}
	if a := r.alerts[r.at]; a.PluginID+a.Ref+a.Alert+a.Name == "" {
		r.w.Unreadable(pointer, "is an alert without an id and a name")
		return false
	}
	return true
}

// instance writes a result for each place: a rule, a method, a URL without its query, and a parameter.
func (r *zapReport) instance(i *zapInstance) error {
	a := r.alerts[r.at]
	rule := cmp.Or(a.Ref, a.PluginID)
	place := strings.TrimSpace(i.Method + " " + withoutQuery(i.URI))
	key := strings.Join([]string{rule, place, i.Param}, " ")
	hash := maphash.String(r.seed, key)
	if r.seen[hash] {
		return nil // another value of the query
	}
	if len(r.seen) < maxPlaces {
		r.seen[hash] = true
	}
	title := cmp.Or(a.Alert, a.Name)
	result := &Result{
		Rule: Rule{
			ID: cmp.Or(a.PluginID, a.Ref), Name: a.Name, Message: cmp.Or(a.Name, a.Alert), Description: plainText(a.Desc),
			Help: paragraphs(plainText(a.Solution), plainText(a.Reference)), CWE: cweIDs(number(a.CWE)), Tags: []string{"security"},
			References: []string{plainText(a.Reference)},
		},
		Message: title, Severity: zapRisk[a.Risk], Confidence: zapConfidence[a.Confidence], Logical: place, Snippet: i.Evidence,
		Fingerprints: map[string]string{"zap/v1": key},
	}
	if i.Param != "" {
		result.Message = title + ": " + i.Param
	}
	result.Message = paragraphs(result.Message, optionalText("Attack: ", jsonstream.Cut(i.Attack, maxAttack), ""), jsonstream.Cut(plainText(i.Info), maxAttack))
	if n := number(a.WASC); n > 0 {
		result.Rule.Tags = append(result.Rule.Tags, "WASC-"+strconv.Itoa(n))
	}
	if a.Confidence == "0" || a.Risk == "-1" {
		result.Suppressed = &Suppression{Reason: "marked as a false positive in ZAP"}
	}
	return r.w.Result(result)
}

var (
	zapRisk       = map[string]string{"0": "Informational", "1": "Low", "2": "Medium", "3": "High"}
	zapConfidence = map[string]string{"0": "low", "1": "low", "2": "medium", "3": "high", "4": "high"}
)

// zapXML is the "Traditional XML" report of ZAP.
var zapXML = Format{Name: "zap-xml", Title: "ZAP XML", Convert: convertZAPXML, Recognises: func(o *Outline) bool {
	return o.Root == '<' && o.Has("OWASPZAPReport")
}}

func convertZAPXML(in *Input, w *Writer) error {
	r := newZAPReport(w)
	version := ""
	walk := func(site, alert xmlReader) error {
		return in.WalkXML(func(x *xmlStream, root *xml.StartElement) error {
			version = xmlAttr(root, "version")
			return x.children(xmlChildren{"site": func(x *xmlStream, e *xml.StartElement) error {
				if err := site(x, e); err != nil {
					return err
				}
				return x.children(xmlChildren{"alerts": func(x *xmlStream, _ *xml.StartElement) error {
					return x.children(xmlChildren{"alertitem": alert})
				}})
			}})
		})
	}
	err := walk(func(*xmlStream, *xml.StartElement) error { return nil }, func(x *xmlStream, _ *xml.StartElement) error {
		a := &zapAlert{}
		defer r.keep(a)
		return x.children(xmlChildren{
			"pluginid": xmlInto(&a.PluginID), "alertRef": xmlInto(&a.Ref), "alert": xmlInto(&a.Alert), "name": xmlInto(&a.Name),
			"riskcode": xmlInto(&a.Risk), "confidence": xmlInto(&a.Confidence), "desc": xmlInto(&a.Desc), "solution": xmlInto(&a.Solution),
			"reference": xmlInto(&a.Reference), "cweid": xmlInto(&a.CWE), "wascid": xmlInto(&a.WASC),
		})
	})
	if err != nil {
		return err
	}
	err = walk(func(_ *xmlStream, e *xml.StartElement) error { r.site(version, xmlAttr(e, "name")); return nil }, r.alertXML)
	if err == nil && len(w.runs) == 0 {
		r.site(version, "")
	}
	return err
}

func (r *zapReport) alertXML(x *xmlStream, _ *xml.StartElement) error {
	if !r.next(x.pointer()) {
		return nil
	}
	var only zapInstance
	listed := false
	err := x.children(xmlChildren{
		"instances": func(x *xmlStream, _ *xml.StartElement) error {
			listed = true
			return x.children(xmlChildren{"instance": xmlItem(r.w, r.instance)})
		},
		"uri": xmlInto(&only.URI), "param": xmlInto(&only.Param), "evidence": xmlInto(&only.Evidence), "method": xmlInto(&only.Method),
		"attack": xmlInto(&only.Attack), "otherinfo": xmlInto(&only.Info),
	})
	if err != nil || listed {
		return err
	}
	return r.instance(&only)
}

// zapJSON is the "Traditional JSON" report of ZAP.
var zapJSON = Format{Name: "zap-json", Title: "ZAP JSON", Convert: convertZAPJSON, Recognises: func(o *Outline) bool {
	return o.Has("site[].alerts") || o.Has("site.alerts") || o.Has("site") && (o.Has("@programName") || o.Has("@generated"))
}}

func convertZAPJSON(in *Input, w *Writer) error {
	r := newZAPReport(w)
	var version string
	var names []string // of sites, which may follow their alerts
	err := in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"@version": into(&version), "site": oneOrMore(func(s *jsonstream.Stream) error {
			name := ""
			err := object(s, members{"@name": into(&name), "alerts": oneOrMore(func(s *jsonstream.Stream) error {
				a := &zapAlert{}
				defer r.keep(a)
				return object(s, members{
					"pluginid": into(&a.PluginID), "alertRef": into(&a.Ref), "alert": into(&a.Alert), "name": into(&a.Name),
					"riskcode": into(&a.Risk), "confidence": into(&a.Confidence), "desc": into(&a.Desc), "solution": into(&a.Solution),
					"reference": into(&a.Reference), "cweid": into(&a.CWE), "wascid": into(&a.WASC),
				})
			})})
			if len(names) < maxAlerts {
				names = append(names, jsonstream.Cut(name, 200))
			}
			return err
		})})
	})
	if err != nil {
		return err
	}
	site := 0
	err = in.Walk(func(s *jsonstream.Stream) error {
		return object(s, members{"site": oneOrMore(func(s *jsonstream.Stream) error {
			r.site(version, names[min(site, len(names)-1)])
			site++
			return object(s, members{"alerts": notNull(w, oneOrMore(r.alertJSON))})
		})})
	})
	if err == nil && len(w.runs) == 0 {
		r.site(version, "")
	}
	return err
}

func (r *zapReport) alertJSON(s *jsonstream.Stream) error {
	if !r.next(s.Pointer()) {
		return s.Skip()
	}
	var only zapInstance
	listed := false
	err := object(s, members{
		"instances": func(s *jsonstream.Stream) error {
			listed = true
			return notNull(r.w, oneOrMore(func(s *jsonstream.Stream) error { return item(s, r.w, r.instance) }))(s)
		},
		"uri": into(&only.URI), "param": into(&only.Param), "evidence": into(&only.Evidence), "method": into(&only.Method),
		"attack": into(&only.Attack), "otherinfo": into(&only.Info),
	})
	if err != nil || listed {
		return err
	}
	return r.instance(&only)
}

// oneOrMore reads a list, or one element in place of a list.
func oneOrMore(read func(*jsonstream.Stream) error) func(*jsonstream.Stream) error {
	return func(s *jsonstream.Stream) error {
		if k := s.Kind(); k != '[' && k != 'n' {
			return read(s)
		}
		return s.Array(func(int) error { return read(s) })
	}
}

// withoutQuery cuts the query and the fragment off a URL. They differ from scan to scan, and may have secrets.
func withoutQuery(url string) string {
	if i := strings.IndexAny(url, "?#"); i >= 0 {
		url = url[:i]
	}
	return url
}

var htmlTag = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// plainText converts a short text in HTML.
func plainText(text string) string {
	text = strings.NewReplacer("</p>", "\n", "<br>", "\n", "<br/>", "\n").Replace(text)
	return strings.TrimSpace(html.UnescapeString(htmlTag.ReplaceAllString(text, "")))
}

// paragraphs joins the texts that are not empty.
func paragraphs(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\n\n")
}

func number(text string) int {
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return 0
	}
	return n
}

// cweIDs is a list with the CWE of a number, if there is one.
func cweIDs(n int) []string {
	if n <= 0 {
		return nil
	}
	return []string{"CWE-" + strconv.Itoa(n)}
}
