/* Rust's standard library takes random numbers from this library of Windows, which wine has since 8.13. For older ones, as Debian 12's:
   the same function on top of the one that they have. For tests alone. */
#include <windows.h>
#include <ntsecapi.h>

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T length)
{
    return RtlGenRandom(data, (ULONG)length);
}
