package payload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"strings"
)

// HTML returns the HTML form of a body made by this package; empty for bodies that have only a text.
func HTML(body []byte) string {
	if !bytes.HasPrefix(body, []byte(`{"`+reportKey+`":`)) {
		return ""
	}
	var wrapper map[string]struct{ HTML string }
	if json.Unmarshal(body, &wrapper) != nil {
		return ""
	}
	return wrapper[reportKey].HTML
}

// Styles of the mail. Mail programs read only style attributes.
const (
	styleBody   = "font-family:system-ui,sans-serif;font-size:14px;line-height:1.5;color:#1f2328"
	styleTable  = "border-collapse:collapse;margin:12px 0"
	styleName   = "text-align:left;padding:4px 24px 4px 0;border-bottom:1px solid #d8dee4;font-weight:normal;white-space:pre"
	styleNumber = "text-align:right;padding:4px 0 4px 24px;border-bottom:1px solid #d8dee4;font-variant-numeric:tabular-nums"
	styleHead   = styleNumber + ";font-weight:600"
)

// html is the report as a table. Names are text from scanners and people, so everything is escaped.
func (r Report) html() string {
	var out strings.Builder
	now, before := r.dates(r.Overview.GetThisPeriod().GetTimePeriod()), r.dates(r.Overview.GetComparedPeriod().GetTimePeriod())
	fmt.Fprintf(&out, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>%s</title></head><body style="%s">`,
		html.EscapeString(r.title()), styleBody)
	fmt.Fprintf(&out, `<h1 style="font-size:18px">%s</h1>`, html.EscapeString(oneLine(r.Name)))
	openTable(&out, "", now, before)
	for _, line := range r.lines() {
		row(&out, line.name, line.now, line.before)
	}
	out.WriteString("</table>")
	if projects := r.Overview.GetProjects(); len(projects) > 0 {
		openTable(&out, "Projects with the most open findings", "Open", "Change")
		for _, p := range projects {
			row(&out, oneLine(p.GetName()), fmt.Sprint(p.GetOpen().GetTotal()), change(p.GetOpen().GetTotal()-p.GetOpenBefore()))
		}
		out.WriteString("</table>")
	}
	fmt.Fprintf(&out, `<p><a href="%s">The same numbers, with charts</a> (dates in %s)</p></body></html>`, html.EscapeString(r.Link), html.EscapeString(r.Zone.String()))
	return out.String()
}

func openTable(out *strings.Builder, name, now, before string) {
	fmt.Fprintf(out, `<table style="%s"><tr><th scope="col" style="%s">%s</th><th scope="col" style="%s">%s</th><th scope="col" style="%s">%s</th></tr>`,
		styleTable, styleName, html.EscapeString(name), styleHead, html.EscapeString(now), styleHead, html.EscapeString(before))
}

func row(out *strings.Builder, name, now, before string) {
	fmt.Fprintf(out, `<tr><th scope="row" style="%s">%s</th><td style="%s">%s</td><td style="%s">%s</td></tr>`,
		styleName, html.EscapeString(name), styleNumber, html.EscapeString(now), styleNumber, html.EscapeString(before))
}
