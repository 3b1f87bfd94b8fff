using System.Diagnostics;

class Commands
{
    void List(string name)
    {
        // ruleid: palisade.csharp.command-injection
        Process.Start("cmd.exe", "/c dir " + name);
        // ruleid: palisade.csharp.command-injection
        new ProcessStartInfo("/bin/sh", $"-c \"ls {name}\"");
        // ok: palisade.csharp.command-injection
        Process.Start("cmd.exe", "/c dir");
        // ok: palisade.csharp.command-injection
        Process.Start("ls", name);
    }
}
