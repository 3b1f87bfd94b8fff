using System.Security.Cryptography;

class Ciphers
{
    void Encrypt(Aes aes, byte[] key)
    {
        // ruleid: palisade.csharp.weak-cipher
        DES.Create();
        // ruleid: palisade.csharp.weak-cipher
        aes.Mode = CipherMode.ECB;
        // ok: palisade.csharp.weak-cipher
        aes.Mode = CipherMode.CBC;
        // ok: palisade.csharp.weak-cipher
        new AesGcm(key, 16);
        // ok: palisade.csharp.weak-cipher
        aes.EncryptCbc(key, key);
    }
}
