using System.Net;

class Connections
{
    void Connect(HttpClientHandler handler, RemoteCertificateValidationCallback verify)
    {
        // ruleid: palisade.csharp.tls-verification-off
        handler.ServerCertificateCustomValidationCallback = (message, certificate, chain, errors) => true;
        // ruleid: palisade.csharp.tls-verification-off
        ServicePointManager.ServerCertificateValidationCallback += (sender, certificate, chain, errors) => true;
        // ok: palisade.csharp.tls-verification-off
        handler.ServerCertificateCustomValidationCallback = (message, certificate, chain, errors) => errors == SslPolicyErrors.None;
        // ok: palisade.csharp.tls-verification-off
        ServicePointManager.ServerCertificateValidationCallback += verify;
        // ok: palisade.csharp.tls-verification-off
        handler.ServerCertificateCustomValidationCallback = (message, certificate, chain, errors) => Pins.Check(certificate);
    }
}
