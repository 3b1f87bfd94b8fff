using System.Security.Cryptography;

class Digests
{
    void Digest(byte[] data)
    {
        // ruleid: palisade.csharp.weak-hash
        MD5.Create();
        // ruleid: palisade.csharp.weak-hash
        SHA1.HashData(data);
        // ok: palisade.csharp.weak-hash
        SHA256.Create();
        // ok: palisade.csharp.weak-hash
        SHA256.HashData(data);
    }
}
