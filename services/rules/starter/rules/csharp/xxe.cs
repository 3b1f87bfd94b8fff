using System.Xml;

class Parsers
{
    void Configure(XmlReaderSettings settings, XmlDocument document)
    {
        // ruleid: palisade.csharp.xxe
        settings.DtdProcessing = DtdProcessing.Parse;
        // ruleid: palisade.csharp.xxe
        document.XmlResolver = new XmlUrlResolver();
        // ok: palisade.csharp.xxe
        settings.DtdProcessing = DtdProcessing.Prohibit;
        // ok: palisade.csharp.xxe
        document.XmlResolver = null;
        // ok: palisade.csharp.xxe
        settings.DtdProcessing = DtdProcessing.Ignore;
    }
}
