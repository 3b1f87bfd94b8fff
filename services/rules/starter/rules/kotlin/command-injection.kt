fun list(name: String) {
    // ruleid: palisade.kotlin.command-injection
    Runtime.getRuntime().exec("ls " + name)
    // ruleid: palisade.kotlin.command-injection
    Runtime.getRuntime().exec("ls $name")
    // ruleid: palisade.kotlin.command-injection
    ProcessBuilder("sh", "-c", name)
    // ok: palisade.kotlin.command-injection
    Runtime.getRuntime().exec("ls -l")
    // ok: palisade.kotlin.command-injection
    ProcessBuilder("ls", name)
    // ok: palisade.kotlin.command-injection
    ProcessBuilder("sh", "-c", "ls | wc -l")
}
