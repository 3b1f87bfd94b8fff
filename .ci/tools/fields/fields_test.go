package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// program is a small program with fields of all kinds.
var program = map[string]string{
	"go.mod":                          "module github.com/palisade/palisade\n\ngo 1.26\n",
	"cmd/palisade/main.go":            "package main\n\nfunc main() {}\n",
	"ent/thing/thing.go":              "package thing\n\nconst FieldKept = \"kept\"\n\nfunc NameEQ(string) bool { return true }\n",
	"ent/ent.go":                      entSource,
	"gen/palisade/x/v1/x.go":          "package v1\n",
	"services/x/x.go":                 serviceSource,
	"services/x/x_convert.go":         "package x\n\nimport \"github.com/palisade/palisade/ent\"\n\nfunc show(t *ent.Thing) string { return t.Shown }\n",
	"services/scans/formats/sarif.go": "package formats\n\ntype sarifResult struct{ Written string }\n",
	"services/scans/formats/x.go":     formatSource,
	"gen/palisade/x/v1/x.pb.go": `package v1

type Request struct {
	state struct{}
	Used  string ` + "`protobuf:\"bytes,1,opt,name=used\"`" + `
	Dead  string ` + "`protobuf:\"bytes,2,opt,name=dead\"`" + `
	// No effect: it is old.
	Old string ` + "`protobuf:\"bytes,3,opt,name=old\"`" + `
	Choice isRequest_Choice ` + "`protobuf_oneof:\"choice\"`" + `
}

type isRequest_Choice interface{ isRequest_Choice() }

type Request_Left struct {
	Left string ` + "`protobuf:\"bytes,4,opt,name=left\"`" + `
}

type Request_Right struct {
	Right string ` + "`protobuf:\"bytes,5,opt,name=right\"`" + `
}

func (*Request_Left) isRequest_Choice()  {}
func (*Request_Right) isRequest_Choice() {}

func (r *Request) GetUsed() string { return r.Used }
func (r *Request) GetLeft() string { return "" }

type Response struct {
	state  struct{}
	Given  string   ` + "`protobuf:\"bytes,1,opt,name=given\"`" + `
	Hollow string   ` + "`protobuf:\"bytes,2,opt,name=hollow\"`" + `
	Parts  []*Part  ` + "`protobuf:\"bytes,3,rep,name=parts\"`" + `
	// Never set: there is no such thing.
	Lie string ` + "`protobuf:\"bytes,4,opt,name=lie\"`" + `
	Kept string ` + "`protobuf:\"bytes,5,opt,name=kept\"`" + `
}

type Part struct {
	state struct{}
	Deep  string ` + "`protobuf:\"bytes,1,opt,name=deep\"`" + `
}

type XServer interface {
	Do(*Request) (*Response, error)
}
`,
}

const entSource = `package ent

type Thing struct {
	ID    int    ` + "`json:\"id,omitempty\"`" + `
	Name  string ` + "`json:\"name,omitempty\"`" + `
	Shown string ` + "`json:\"shown,omitempty\"`" + `
	Kept  string ` + "`json:\"kept,omitempty\"`" + `
	Raw   string ` + "`json:\"raw_text,omitempty\"`" + `
}

type ThingCreate struct{}

func (c *ThingCreate) SetName(string) *ThingCreate  { return c }
func (c *ThingCreate) SetShown(string) *ThingCreate { return c }
`

const serviceSource = `package x

import (
	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/thing"
	v1 "github.com/palisade/palisade/gen/palisade/x/v1"
)

type Server struct{}

func (Server) Do(r *v1.Request) (*v1.Response, error) {
	new(ent.ThingCreate).SetName(r.GetUsed()).SetShown("").SetShown(r.GetLeft())
	_ = thing.NameEQ("a")
	out := &v1.Response{Given: r.GetUsed(), Hollow: "", Lie: "x"}
	before := &v1.Response{}
	out.Kept = before.Kept
	_ = &v1.Response{Kept: string(before.Kept)}
	out.Parts = append(out.Parts, &v1.Part{})
	_ = "UPDATE things SET raw_text = '' WHERE id = 1"
	return out, nil
}

var _ v1.XServer = Server{}
`

const formatSource = `package formats

type list[T any] []T

type report struct {
	Used, Dead, Filled string
	Links list[struct{ URL string }]
	Pages list[struct{ URL string }]
}

type Shown struct{ Elsewhere string }

func into(*string) {}

func (r *report) read() string {
	into(&r.Filled)
	r.Dead = "x"
	for _, l := range r.Links {
		return l.URL
	}
	for _, p := range r.Pages {
		return p.URL
	}
	return r.Used
}
`

func TestCheck(t *testing.T) {
	root := t.TempDir()
	for name, text := range program {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	rows, err := table(root)
	if err != nil {
		t.Fatal(err)
	}
	got := check(rows, []exception{except(`x\.v1\.Part\.deep`, ""), except(`x\.v1\.Gone\.name`, "")})
	want := []string{
		"x.v1.Request.dead (request): nothing uses it",
		"x.v1.Request.right (request): nothing uses it",
		"x.v1.Response.hollow (response): nothing writes it",
		"x.v1.Response.lie: its comment says that it has no effect or is never set, but code uses it",
		"x.v1.Response.kept (response): nothing writes it",
		"thing.shown (column): nothing uses it",
		"thing.kept (column): nothing writes it, nothing uses it",
		"x.go Dead (decoded): nothing uses it",
		"x.go Filled (decoded): nothing uses it",
		`exceptions.go: ^(x\.v1\.Gone\.name)$ is not needed any more`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}
