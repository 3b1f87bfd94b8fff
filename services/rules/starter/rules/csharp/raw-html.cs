using Microsoft.AspNetCore.Html;

class Pages
{
    void Show(string text, IHtmlHelper Html)
    {
        // ruleid: palisade.csharp.raw-html
        Html.Raw(text);
        // ruleid: palisade.csharp.raw-html
        new HtmlString("<p>" + text);
        // ok: palisade.csharp.raw-html
        Html.Raw("<hr>");
        // ok: palisade.csharp.raw-html
        Html.Encode(text);
    }
}
