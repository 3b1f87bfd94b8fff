package formats

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/palisade/palisade/services/internal/testrun"
	"github.com/palisade/palisade/services/scans/jsonstream"
)

var xmlLimits = jsonstream.Limits{MaxBytes: 1 << 20, MaxDepth: 16, MaxValues: 10_000, MaxValueBytes: 4 << 10, MaxTokenBytes: 2 << 10}

type xmlNote struct {
	ID   string `xml:"id,attr"`
	Text string `xml:"text"`
	Line int    `xml:"line"`
}

// walkNotes reads <notes><group><note id=""><text/><line/></note>…</group></notes>.
func walkNotes(doc string, limits jsonstream.Limits) (notes []xmlNote, skipped []Unreadable, err error) {
	w := newWriter(io.Discard, io.Discard)
	w.Run(Tool{Name: "notes"})
	in := &Input{ctx: context.Background(), src: strings.NewReader(doc), limits: limits}
	err = in.WalkXML(func(x *xmlStream, _ *xml.StartElement) error {
		return x.children(xmlChildren{"group": func(x *xmlStream, _ *xml.StartElement) error {
			return x.children(xmlChildren{"note": xmlItem(w, func(n *xmlNote) error {
				notes = append(notes, *n)
				return nil
			})})
		}})
	})
	return notes, w.notes().Unreadable, err
}

func TestXMLReadsElementByElement(t *testing.T) {
	doc := "\xEF\xBB\xBF" + `<?xml version="1.0" encoding="utf-8"?><!-- c --><n:notes xmlns:n="urn:n"><other><group><note/></group></other>
<group><note id="1"><text>a &lt;b&gt; <![CDATA[&c;]]></text><line>7</line></note><note id="2"/>
<note id="3"><line>seven</line></note><note id="4"><x>` + strings.Repeat("<y/>", 2000) + `</x></note><note id="5"><text>last</text></note></group></n:notes>
`
	notes, skipped, err := walkNotes(doc, xmlLimits)
	if err != nil {
		t.Fatal(err)
	}
	want := []xmlNote{{ID: "1", Text: "a <b> &c;", Line: 7}, {ID: "2"}, {ID: "5", Text: "last"}}
	if fmt.Sprint(notes) != fmt.Sprint(want) {
		t.Errorf("read %v, want %v", notes, want)
	}
	if len(skipped) != 2 || skipped[0].Pointer != "/notes/group/note (line 3)" || skipped[0].Reason != "has a field of a wrong type" ||
		!strings.HasPrefix(skipped[1].Reason, "has more than 4096 bytes") {
		t.Errorf("unreadable: %+v", skipped)
	}
}

func TestXMLIsRefused(t *testing.T) {
	laughs := `<!DOCTYPE notes [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><notes><group><note><text>&b;</text></note></group></notes>`
	for doc, want := range map[string]string{
		laughs: "it has a DOCTYPE, which is refused",
		`<!DOCTYPE notes SYSTEM "http://127.0.0.1/x.dtd"><notes/>`:      "DOCTYPE",
		`<notes><!DOCTYPE notes><group/></notes>`:                       "a directive after the start",
		`<notes><group><note><text>&xxe;</text></note></group></notes>`: "invalid character entity &xxe;",
		"<notes>\n<group><note>":                                        "the file ends before its root element does (line 2)",
		"<notes>\n<group><no":                                           "the file ends before its root element does (line 2)",
		`<notes><group></notes></group>`:                                "another name",
		`<notes/><notes/>`:                                              "a second root element",
		`<notes/>x`:                                                     "text outside of the root element",
		`</notes>`:                                                      "another name",
		``:                                                              "the file ends",
		`<?xml version="1.0" encoding="ISO-8859-1"?><notes/>`:                    `its encoding is "ISO-8859-1"`,
		`<?xml version="1.1"?><notes/>`:                                          `unsupported version "1.1"`,
		"<notes><group>\xFF</group></notes>":                                     "invalid UTF-8",
		strings.Repeat("<notes>", 17):                                            "nested too deeply",
		`<notes>` + strings.Repeat("<a/>", 10_000) + `</notes>`:                  "more elements",
		`<notes><group>` + strings.Repeat("x", 3000) + `</group></notes>`:        "a text or a tag has too many bytes",
		`<notes><group><!--` + strings.Repeat("x", 3000) + `--></group></notes>`: "a text or a tag has too many bytes",
		`<notes a="` + strings.Repeat("x", 3000) + `"></notes>`:                  "a text or a tag has too many bytes",
	} {
		_, _, err := walkNotes(doc, xmlLimits)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", doc, err, want)
		}
		checkXMLError(t, err)
	}
	if _, _, err := walkNotes(`<?xml version="1.0" encoding="us-ascii"?><notes/>`, xmlLimits); err != nil {
		t.Errorf("ASCII: %v", err)
	}
	limits := xmlLimits
	limits.MaxTokenBytes = 1 << 20
	if _, _, err := walkNotes(`<notes a="`+strings.Repeat("x", maxTag)+`"></notes>`, limits); err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Errorf("a tag over its limit: %v", err)
	}
	limits.MaxBytes = 100
	if _, _, err := walkNotes(`<notes>`+strings.Repeat("<a/>", 100)+`</notes>`, limits); err == nil || !strings.Contains(err.Error(), "more bytes") {
		t.Errorf("a document over its limit: %v", err)
	}
}

func checkXMLError(t *testing.T, err error) {
	t.Helper()
	var invalid *XMLError
	var limit *jsonstream.LimitError
	switch {
	case err == nil:
	case !errors.As(err, &invalid) && !errors.As(err, &limit):
		t.Errorf("untyped error %v", err)
	case invalid != nil && invalid.Line < 1, !utf8.ValidString(err.Error()):
		t.Errorf("error %+v", err)
	}
}

func TestXMLOutline(t *testing.T) {
	for doc, want := range map[string]string{
		`<?xml version="1.0"?><bom xmlns="urn:b"><components><component/></components>`: "urn:b bom bom.components bom.components.component",
		` <c:bom xmlns="urn:a" xmlns:c="urn:b"><c:x/></c:bom>`:                          "urn:b bom bom.x",
		"<!DOCTYPE a><page><head><title>Sign in</title><br></head>":                     " page page.head page.head.title page.head.br",
	} {
		o, whole, err := sketch(context.Background(), strings.NewReader(doc), xmlLimits, headSize)
		if err != nil || !whole || o.Root != '<' {
			t.Fatalf("%q: %v", doc, err)
		}
		got := o.Namespace
		for _, names := range o.paths {
			got += " " + strings.Join(names, ".")
		}
		if got != want || !o.Has(strings.Fields(want)[1]) {
			t.Errorf("%q: %q, want %q", doc, got, want)
		}
	}
}

// A few bytes of XML must not become large structs, and nothing is buffered beyond the limits.
func TestCraftedXMLTakesBoundedMemory(t *testing.T) {
	testrun.Deep(t) // measures memory
	limits := jsonstream.Limits{MaxBytes: 1 << 30, MaxDepth: 256, MaxValues: 20_000_000, MaxValueBytes: 16 << 20, MaxTokenBytes: 16 << 20}
	attributes := strings.Repeat(` a=""`, 10_000)
	for name, doc := range map[string]string{
		"elements":   "<notes><group><note>" + strings.Repeat("<text/>", 1<<19) + "</note></group></notes>",
		"attributes": "<notes>" + strings.Repeat("<group"+attributes+"/>", 200) + "</notes>",
		"deep names": strings.Repeat("<a"+strings.Repeat("n", 60_000)+">", 200),
	} {
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := walkNotes(doc, limits)
		runtime.ReadMemStats(&after)
		checkXMLError(t, err)
		if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 64<<20 {
			t.Errorf("%s: %d MiB of XML take %d MiB", name, len(doc)>>20, grown>>20)
		}
	}
}

// FuzzXML checks for any bytes: no panic, and the document is read or a typed error names the line.
func FuzzXML(f *testing.F) {
	for _, seed := range []string{
		`<?xml version="1.0"?><notes><group><note id="1"><text>a &amp; b</text><line>7</line></note></group></notes>`,
		`<notes><group><note><line>x</line></note></group><!-- c --><?p i?></notes>`, `<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>`,
		`<a xmlns:p="urn:p"><p:b><![CDATA[x]]></p:b></a>`, "<a", "<a></b>", "\xEF\xBB\xBF<a/>", "<a>\x00</a>", "<a>&#0;</a>", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		_, _, err := walkNotes(string(doc), xmlLimits)
		checkXMLError(t, err)
		o := &Outline{known: map[string]bool{}, values: map[string]string{}}
		checkXMLError(t, o.sketchXML(context.Background(), bytes.NewReader(doc), xmlLimits))
	})
}
