using System;
using System.Security.Cryptography;

class Values
{
    void Make(Random random)
    {
        // ruleid: palisade.csharp.insecure-random
        int resetToken = random.Next(1000000);
        // ruleid: palisade.csharp.insecure-random
        int nonce = Random.Shared.Next();
        // ok: palisade.csharp.insecure-random
        int sessionToken = RandomNumberGenerator.GetInt32(1000000);
        // ok: palisade.csharp.insecure-random
        int footprint = random.Next(100);
        // ok: palisade.csharp.insecure-random
        int tokenCount = random.Next(100);
    }
}
