/* Starts itself once more with the same argument, and both wait: a command with a child, for windows.py. With `pid` it says its number
   and waits alone. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

int wmain(int count, wchar_t **words)
{
    if (count < 3) {
        STARTUPINFOW startup = {.cb = sizeof startup};
        PROCESS_INFORMATION made;
        wchar_t line[1024];
        _snwprintf(line, 1023, L"\"%ls\" %ls child", words[0], count > 1 ? words[1] : L"");
        line[1023] = 0;
        if (!CreateProcessW(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &made))
            return 1;
    } else if (!wcscmp(words[1], L"pid")) {
        printf("%lu\n", GetCurrentProcessId());
        fflush(stdout);
    }
    Sleep(600 * 1000);
    return 0;
}
