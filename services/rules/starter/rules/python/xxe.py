import lxml.etree


def parsers():
    # ruleid: palisade.python.xxe
    lxml.etree.XMLParser(resolve_entities=True)
    # ruleid: palisade.python.xxe
    lxml.etree.XMLParser(load_dtd=True, no_network=False)
    # ok: palisade.python.xxe
    lxml.etree.XMLParser(resolve_entities=False)
    # ok: palisade.python.xxe
    lxml.etree.XMLParser()
